import { expect, test } from '@jest/globals';
import { byteSize } from './byte-size.ts';
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

test('sizes are for people', () => {
  expect([0, 1023, 1024, 5 * 1024 * 1024, 200 * 1024].map(byteSize)).toEqual([
    ...['0 bytes', '1023 bytes', '1.0 KiB', '5.0 MiB', '200 KiB'],
  ]);
});
