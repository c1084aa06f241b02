// error: VerifyError: expected the regions ['do'], got ['body']
program "p" on {0, 1} () {
  simp.pcall_static() {parties = {0}} body () {
    return
  }
  return
}
