// error: VerifyError: expected the regions ['do'], got ['do', 'more']
program "p" on {0, 1} () {
  simp.pcall_static() {parties = {0}} do () {
    return
  } more () {
    return
  }
  return
}
