// error: VerifyError: i64[]@{5} names parties outside of {0, 1}
program "p" on {0, 1} (%0: i64[]@{0}) {
  func.call(%0) {name = "f"} body (%1: i64[]@{5}) {
    return
  }
  return
}
