// error: ParseError: line 1, column 1: expected 'program', got the end
