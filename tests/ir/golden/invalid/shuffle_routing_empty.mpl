// error: VerifyError: no party is named
program "p" on {0, 1} (%0: i64[]@{0, 1}) {
  %1 = simp.shuffle_static(%0) {routing = []} : i64[]@{}
  return
}
