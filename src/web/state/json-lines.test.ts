import { expect, test } from '@jest/globals';
import { jsonLines } from './json-lines.ts';

test('lines are indented, and values stay as they are written', () => {
  const text = '{"a":[1.0,1e400,{}],"b":"x, {\\" [y]","c":[ ],"d":{"e":12345678901234567890}}';
  expect(jsonLines(text)).toEqual([
    ...['{', '  "a": [', '    1.0,', '    1e400,', '    {}', '  ],', '  "b": "x, {\\" [y]",', '  "c": [],'],
    ...['  "d": {', '    "e": 12345678901234567890', '  }', '}'],
  ]);
  expect(jsonLines(JSON.stringify(JSON.parse('{"a":[1,{"b":null}]}'), null, 7))).toEqual([
    ...['{', '  "a": [', '    1,', '    {', '      "b": null', '    }', '  ]', '}'],
  ]);
});

test('a text that is cut does not hang', () => {
  expect(jsonLines('{"a":"x')).toEqual(['{', '  "a": "x']);
});
