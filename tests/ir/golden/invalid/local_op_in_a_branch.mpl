// error: VerifyError: it stands at local level, not at party level
program "p" on {0, 1} (%0: bool[]@{0, 1}) {
  simp.uniform_cond(%0) {verify_uniform = true} then () {
    %1 = toy.rank() : i64[]
    return
  } else () {
    return
  }
  return
}
