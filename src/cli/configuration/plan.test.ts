import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import type { Document } from './document.ts';
import type { Spec } from './kinds/kind.ts';
import { kinds } from './kinds/kinds.ts';
import { OrganizationApi } from './organization-api.ts';
import { planOrganization } from './plan.ts';

const grant = { effect: 'allow', permissions: ['read'], stacks: '*/*' };
let grants: object[];
let records: object[];
const server = createServer((request, response) => {
  const [list = ''] = (request.url ?? '').replace('/api/orgs/acme/', '').split('?');
  const lists: Record<string, object> = {
    members: { members: [{ role: 'member', user: { githubLogin: 'alice' } }] },
    invitations: { invitations: [{ login: 'bob', role: 'member' }] },
    grants: { grants },
    'managed-objects': { objects: records },
  };
  response.end(JSON.stringify(lists[list] ?? {}));
});
let api: OrganizationApi;
beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  api = new OrganizationApi({ origin, token: 'hf-x' }, 'acme');
});
afterAll(() => void server.close());
beforeEach(() => {
  grants = [{ ...grant, id: '1', user: 'alice' }];
  records = [{ kind: 'Grant', name: 'reads', object: '1', labels: {} }];
});

function declare(name: string, spec: Spec): Document {
  const about = { kind: 'Grant', name, organization: 'acme', labels: {}, folder: '.' } as const;
  return { ...about, spec: kinds.Grant.complete(spec), locate: () => name };
}
const plan = (...documents: Document[]) => planOrganization(api, documents, { prune: null });

test('a grant that is now for an invited user is taken from its holder at once, and waits', async () => {
  const { changes, released, unchanged, waiting } = await plan(
    declare('reads', { user: 'bob', permissions: ['read'] }),
  );
  expect(changes).toMatchObject([{ action: 'delete', name: 'reads', present: { object: '1' } }]);
  expect(waiting).toMatchObject([{ name: 'reads', members: ['bob'] }]);
  expect([released, unchanged]).toEqual([[], 0]);
});

test('a grant that another document declares stays when the document that had it waits', async () => {
  const reads = { permissions: ['read'] };
  const { changes, noted, released } = await plan(
    declare('reads', { user: 'bob', ...reads }),
    declare('others', { user: 'alice', ...reads }),
  );
  expect(changes).toEqual([]);
  expect(noted).toMatchObject([{ name: 'others', object: '1' }]);
  expect(released).toMatchObject([{ name: 'reads' }]);
});

test('a grant that waits and was never made changes nothing', async () => {
  records = [];
  const { changes, released } = await plan(declare('reads', { user: 'bob', permissions: ['read'] }));
  expect([changes, released]).toEqual([[], []]);
});

test('what an invited user is denied cannot wait: they would have it from the acceptance on', async () => {
  await expect(plan(declare('no-writes', { effect: 'deny', user: 'bob', permissions: ['write'] }))).rejects.toThrow(
    'no-writes: Grant acme/no-writes denies permissions to bob, who is not yet a member: add it after the invitation is accepted',
  );
});
