// error: VerifyError: operand 1 is f32[]@{1}, operand 0 is i64[]@{0}: one type expected
program "p" on {0, 1} (%0: i64[]@{0}, %1: f32[]@{1}) {
  %2 = simp.converge(%0, %1) : i64[]@{0, 1}
  return %2
}
