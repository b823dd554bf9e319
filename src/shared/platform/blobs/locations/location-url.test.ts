import { expect, test } from '@jest/globals';
import { parseConfig } from '../../config/config.ts';
import { LocationError, parseLocation } from './location-url.ts';

test.each([
  's3://KEY:sec/ret@bucket',
  's3://KEY:sec/bucket',
  's3://KEY:7/sec@bucket',
  's3://KEY:/sec@bucket',
  's3://[sec',
])('%s is refused without a part of it', (location) => {
  const parse = () => parseLocation(location, parseConfig({}).blobs);
  expect(parse).toThrow(LocationError);
  expect(parse).not.toThrow('sec');
});
