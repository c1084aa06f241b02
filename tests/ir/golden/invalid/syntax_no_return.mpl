// error: ParseError: line 2, column 1: expected 'name', got '}'
program "p" on {0} () {
}
