program "a \"quoted\" \\ name,\nna\u00efve \u03b1 \ud83d\ude00" on {0, 1} () {
  return
}
