// error: VerifyError: no party is named
program "p" on {0, 1} () {
  simp.pcall_static() {parties = {}} do () {
    return
  }
  return
}
