// error: VerifyError: the parties {2} are not among {0, 1}
program "p" on {0, 1} () {
  simp.pcall_static() {parties = {1, 2}} do () {
    return
  }
  return
}
