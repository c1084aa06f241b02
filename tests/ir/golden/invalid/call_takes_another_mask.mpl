// error: VerifyError: f: region 'body' takes (i64[]@{0, 1}), got (i64[]@{0})
program "p" on {0, 1} (%0: i64[]@{0}) {
  func.call(%0) {name = "f"} body (%1: i64[]@{0, 1}) {
    return
  }
  return
}
