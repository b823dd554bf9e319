import { expect, test } from '@jest/globals';
import { QueryClientProvider } from '@tanstack/react-query';
import { createElement } from 'react';
import { renderToStaticMarkup } from 'react-dom/server';
import type { PendingSteps, StackDetails } from '../platform/app/procedure-types.ts';
import { queryClient, trpc } from '../platform/app/trpc.ts';
import { SubmitBlock } from '../platform/ui/submit-block.ts';
import { PendingRepair } from './pending-repair.tsx';

const stack = { organization: 'acme', project: 'web', stack: 'prod' };
const step = { urn: 'urn:pulumi:prod::web::a:b:C::d', type: 'a:b:C', operation: 'creating', id: null };
const pending = { headVersion: 3, isCut: false, isKnown: true, leftBy: null, items: [{ ...step, isImportable: true }] };

function seen(active: unknown): string {
  queryClient.setQueryData(trpc.stacks.pending.queryKey(stack), pending as PendingSteps);
  const details = { active, permissions: ['write'] } as unknown as StackDetails;
  const page = createElement(SubmitBlock, { value: 'Sign in again' }, createElement(PendingRepair, { details, stack }));
  const html = renderToStaticMarkup(createElement(QueryClientProvider, { client: queryClient }, page));
  queryClient.clear();
  return html.replace(/<div hidden.*/, '');
}

test('a repair says that the session has ended, also while an update hides its choices', () => {
  expect(seen(null).match(/Sign in again/g)).toHaveLength(1);
  expect(seen({}).match(/Sign in again/g)).toHaveLength(1);
});
