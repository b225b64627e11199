"""A real browser over the W3C WebDriver protocol: Chromium driven by chromedriver, no package."""

import base64
import json
import re
import shutil
import subprocess
import urllib.request
from contextlib import contextmanager

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
MISSING = "no chromedriver, or none of " + ", ".join(BROWSERS) + ", on this machine"


def find_programs():
    """Paths of chromedriver and of the browser; None when one is not there."""
    driver = shutil.which("chromedriver")
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    return (driver, browser) if driver and browser else None


class Browser:
    """One window; `address` is that of its WebDriver session."""

    def __init__(self, address):
        self._address = address

    def command(self, method, path, **body):
        data = json.dumps(body).encode() if method == "POST" else None
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(
            f"{self._address}{path}", data=data, headers=headers, method=method
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)["value"]

    def open(self, url):
        self.command("POST", "/url", url=url)

    def run(self, script):
        """What a piece of JavaScript returns."""
        return self.command("POST", "/execute/sync", script=script, args=[])

    def resize(self, width, height):
        """Make the page as wide and high as a device of this size."""
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": True}
        command = "Emulation.setDeviceMetricsOverride"
        self.command("POST", "/goog/cdp/execute", cmd=command, params=metrics)

    def screenshot(self, path):
        path.write_bytes(base64.b64decode(self.command("GET", "/screenshot")))

    def console(self):
        """Messages of the console since the last call."""
        return self.command("POST", "/se/log", type="browser")

    def requested(self):
        """Addresses requested since the last call."""
        entries = self.command("POST", "/se/log", type="performance")
        messages = [json.loads(entry["message"])["message"] for entry in entries]
        return [
            message["params"]["request"]["url"]
            for message in messages
            if message["method"] == "Network.requestWillBeSent"
        ]


@contextmanager
def browser(profile_directory):
    """A headless browser with a fresh profile, closed in the end."""
    driver, program = find_programs()
    server = subprocess.Popen(
        [driver, "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    try:
        port = next(
            match[1] for line in server.stdout if (match := re.search(r"on port (\d+)\.", line))
        )
        root = Browser(f"http://127.0.0.1:{port}")
        arguments = ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
        arguments.append(f"--user-data-dir={profile_directory}")
        capabilities = {
            "goog:chromeOptions": {"binary": program, "args": arguments},
            "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"},
        }
        answer = root.command("POST", "/session", capabilities={"alwaysMatch": capabilities})
        window = Browser(f"http://127.0.0.1:{port}/session/{answer['sessionId']}")
        try:
            yield window
        finally:
            window.command("DELETE", "")
    finally:
        server.terminate()
        server.wait(timeout=30)
        server.stdout.close()
