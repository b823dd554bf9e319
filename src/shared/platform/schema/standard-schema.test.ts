import { expect, test } from '@jest/globals';
import { Type } from 'typebox';
import { standard } from './standard-schema.ts';

test('a schema is compiled once, however often it is wrapped', () => {
  let reads = 0;
  const schema = new Proxy(Type.Object({ name: Type.String() }), {
    get: (target, key, receiver) => {
      reads++;
      return Reflect.get(target, key, receiver) as unknown;
    },
  });
  const check = (value: unknown) => standard(schema)['~standard'].validate(value);
  expect(check({ name: 'a' })).toEqual({ value: { name: 'a' } });
  expect(reads).toBeGreaterThan(0);
  reads = 0;
  expect(check({ name: 'b' })).toEqual({ value: { name: 'b' } });
  expect(reads).toBe(0);
  expect(check({ name: 1 })).toEqual({ issues: [{ message: 'must be string', path: ['name'] }] });
});
