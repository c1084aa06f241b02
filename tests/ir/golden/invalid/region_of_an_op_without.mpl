// error: VerifyError: expected the regions [], got ['do']
program "p" on {0, 1} (%0: i64[]@{0}) {
  %1 = simp.converge(%0) do () {
    return
  } : i64[]@{0}
  return
}
