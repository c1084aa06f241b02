// error: VerifyError: attribute 'name': expected str, got TensorType
program "p" on {0, 1} () {
  func.call() {name = i64[]} body () {
    return
  }
  return
}
