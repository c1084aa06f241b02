program "nothing" on {0} () {
  return
}
