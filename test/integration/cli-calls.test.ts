import { randomUUID } from 'node:crypto';
import { expect, test } from '@jest/globals';
import { cliCalls } from '../fixtures/cli/calls.ts';
import { listRoutes } from '../support/routes.ts';
import { createStack } from '../support/state.ts';
import { testApp } from '../support/test-app.ts';

const app = testApp();

test('each call of the CLI is served, or refused with what to do instead', async () => {
  const stack = await createStack(app);
  const values: Readonly<Record<string, string>> = {
    ...{ ORG: stack.organization, PROJECT: stack.project, STACK: 'none', ID: randomUUID(), NAME: 'none' },
    SOURCE: 'private',
  };
  const routes = listRoutes(app.app).map((route) => new RegExp(`^${route.replace(/:\w+(\([^/]*\))?/g, '[^/]+')}$`));
  const found = await Promise.all(
    cliCalls.map(async ([method, template, answer]) => {
      const path = template.replace(/[A-Z]{2,}/g, (word) => values[word] ?? word);
      const body = method === 'GET' || method === 'HEAD' || method === 'DELETE' ? {} : { body: {} };
      const { status, text } = await app.call(method as 'GET', path, { auth: stack.auth, ...body });
      const hasRoute = routes.some((route) => route.test(`${method} ${path}`));
      const isRight =
        answer === 'served'
          ? hasRoute && status < 500
          : status === 404 && (JSON.parse(text) as { message: string }).message.startsWith(answer.refused);
      return isRight ? [] : [`${method} ${template}: ${status} ${text.slice(0, 200)}`];
    }),
  );
  expect(found.flat()).toEqual([]);
});
