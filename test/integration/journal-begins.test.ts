import { expect, test } from '@jest/globals';
import { beginning } from '../support/journal-entries.ts';
import { createStack, ok, startUpdate } from '../support/state.ts';
import { testApp } from '../support/test-app.ts';
import { append } from '../support/update-calls.ts';

const app = testApp();
const batchEntries = 5_000;

test('the state of a running update whose journal is long and has nothing but begins can be exported', async () => {
  const stack = await createStack(app);
  const update = await startUpdate(app, stack, { journal: true });
  for (let at = 0; at < 4; at++) {
    const first = 1 + at * batchEntries;
    const entries = Array.from({ length: batchEntries }, (_, index) => beginning(first + index, first + index));
    await ok(append(app, update, entries));
  }
  const response = await app.call('GET', `${stack.path}/export`, { auth: stack.auth });
  expect({ status: response.status, json: response.json }).toMatchObject({ status: 200, json: { version: 3 } });
});
