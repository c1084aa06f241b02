// error: VerifyError: region 'cond' takes (i64[]@{0}), got (i64[]@{0, 1})
program "p" on {0, 1} (%0: i64[]@{0, 1}) {
  %1 = simp.while_loop(%0) {verify_uniform = true} cond (%2: i64[]@{0}) {
    return
  } body (%5: i64[]@{0}) {
    return %5
  } : i64[]@{0, 1}
  return %1
}
