// error: VerifyError: branch 'else' takes (f32[]@{0}), got (i64[]@{0})
program "p" on {0, 1} (%0: bool[]@{0, 1}, %1: i64[]@{0}) {
  simp.uniform_cond(%0, %1) {verify_uniform = true} then (%2: i64[]@{0}) {
    return
  } else (%3: f32[]@{0}) {
    return
  }
  return
}
