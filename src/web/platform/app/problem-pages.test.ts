import { expect, test } from '@jest/globals';
import { TRPCClientError } from '@trpc/client';
import { createElement } from 'react';
import { renderToStaticMarkup } from 'react-dom/server';
import { PartProblem } from './problem-pages.tsx';

function shown(code: string, kind: string): string {
  const error = TRPCClientError.from({ error: { code: -32_000, message: 'It is so', data: { code, kind } } });
  return renderToStaticMarkup(createElement(PartProblem, { error, onRetry: () => {} }));
}

test('a part of a page offers to try again only what may succeed', () => {
  expect(shown('INTERNAL_SERVER_ERROR', 'internal')).toMatch(/role="alert".*It is so.*<button/);
  for (const [code, kind] of [
    ['NOT_FOUND', 'events-deleted'],
    ['NOT_FOUND', 'not-found'],
    ['FORBIDDEN', 'forbidden'],
  ] as const) {
    expect(shown(code, kind)).toContain('It is so');
    expect(shown(code, kind)).not.toMatch(/alert|button/);
  }
});
