// error: VerifyError: unknown op 'simp.nosuch'
program "p" on {0, 1} () {
  simp.nosuch()
  return
}
