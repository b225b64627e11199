"""Same seed, same bits: also between the process that compiles the kernels and later ones."""


def test_the_compiling_run_and_the_cached_run_agree_to_the_last_bit(compiling_run):
    assert len(compiling_run.output.split()) == 4
    assert compiling_run.run_again() == compiling_run.output


def test_kernels_compiled_in_two_processes_agree_with_them_too(compiling_run, tmp_path):
    assert compiling_run.run_again(cache=tmp_path) == compiling_run.output
