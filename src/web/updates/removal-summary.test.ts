import { expect, test } from '@jest/globals';
import { createElement } from 'react';
import { renderToStaticMarkup } from 'react-dom/server';
import { RemovalSummary } from './removal-summary.tsx';
import { UpdateProgress } from './update-progress.ts';

interface Case {
  readonly op?: string;
  readonly hasSummary?: boolean;
  readonly status?: 'running' | 'succeeded' | 'failed' | 'cancelled';
  readonly isOver?: boolean;
  readonly hasGaps?: boolean;
}

function titleOf({
  hasGaps = false,
  hasSummary = true,
  isOver = true,
  op = 'same',
  status = 'succeeded',
}: Case): string {
  const progress = new UpdateProgress();
  const urn = 'urn:pulumi:dev::web::aws:s3/bucket:Bucket::a';
  progress.add({ sequence: 0, timestamp: 1, resourcePreEvent: { metadata: { op, urn } } });
  if (hasSummary) progress.add({ sequence: 1, timestamp: 1, summaryEvent: {} });
  const feed = { progress, isOver, hasGaps };
  const html = renderToStaticMarkup(createElement(RemovalSummary, { feed, update: { status }, revision: 1 }));
  return /role="status">([^<]*)/.exec(html)?.[1] ?? '';
}

test('a preview says what it would delete only once it has succeeded, and all its events are read', () => {
  expect(titleOf({ op: 'delete' })).toBe('Would delete 1 resource');
  expect(titleOf({})).toBe('');
  for (const op of ['same', 'delete', 'replace']) {
    for (const hasSummary of [true, false]) {
      for (const status of ['running', 'succeeded'] as const)
        expect(titleOf({ op, hasSummary, isOver: false, status })).toMatch(/not yet read to its end/);
      for (const status of ['failed', 'cancelled'] as const) {
        expect(titleOf({ op, hasSummary, status })).toMatch(/did not succeed/);
        expect(titleOf({ op, hasSummary, hasGaps: true, status })).toMatch(/not all here/);
      }
    }
    expect(titleOf({ op, hasSummary: false })).toMatch(/not all here/);
    expect(titleOf({ op, hasGaps: true })).toMatch(/not all here/);
  }
});
