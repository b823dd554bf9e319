import { expect, test } from '@jest/globals';
import { listEvents } from '../../support/audit.ts';
import { runInCluster } from '../../support/cluster-app.ts';
import { createStack, deployment, ok } from '../../support/state.ts';
import { createTestApp } from '../../support/test-app.ts';

await runInCluster({}, async () => {
  test('a commit of a worker is recorded with its requester', async () => {
    await using app = await createTestApp();
    const { auth, organization, path } = await createStack(app);
    const headers = { 'user-agent': 'pulumi-cli/1' };
    const imported = await ok(app.call('POST', `${path}/import`, { auth, body: deployment(1), headers }));
    await ok(app.call('POST', `${path}/rename`, { auth, body: { newName: 'renamed' }, headers }));
    const [created, ...events] = await listEvents(app, organization);
    expect(events.map(({ action }) => action)).toEqual(['stack.import', 'stack.rename']);
    const { login, token_id } = created as NonNullable<typeof created>;
    for (const event of events)
      expect(event).toMatchObject({ login, token_id, role: 'admin', user_agent: 'pulumi-cli/1' });
    expect(events[0]?.['request_id']).toBe(imported.headers['x-pulumi-request-id']);
  });
});
