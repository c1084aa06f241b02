// error: VerifyError: at party level a value has a MPType: i64[]
program "p" on {0, 1} (%0: i64[]) {
  return
}
