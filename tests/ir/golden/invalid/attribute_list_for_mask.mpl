// error: VerifyError: attribute 'parties': expected Mask, got tuple
program "p" on {0, 1} () {
  simp.pcall_static() {parties = [0]} do () {
    return
  }
  return
}
