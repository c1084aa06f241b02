// error: VerifyError: the index is an integer scalar, got i64[1]@{1}
program "p" on {0, 1} (%0: i64[]@{0}, %1: i64[1]@{1}) {
  %2 = simp.shuffle_dynamic(%0, %1) : i64[]@{1}
  return
}
