// error: VerifyError: the body 'do' takes (i64[], i64[]), got (i64[])
program "p" on {0, 1} (%0: i64[]@{0}) {
  simp.pcall_dynamic(%0) do (%1: i64[], %2: i64[]) {
    return
  }
  return
}
