import { createRequire } from 'node:module';
import { join } from 'node:path';

// The package has types only for its CommonJS module.
type Sequencers = typeof import('@jest/test-sequencer', { with: { 'resolution-mode': 'require' }});
const { default: Sequencer } = createRequire(import.meta.url)('@jest/test-sequencer') as Sequencers;
type Test = Parameters<InstanceType<typeof Sequencer>['sort']>[0][number];

/** The files that take longest, roughly the slowest first. */
const slowest = [
  'test/faults/cluster-faults.test.ts',
  'e2e/web-organization.test.ts',
  'e2e/killed-cli.test.ts',
  'test/integration/backup.test.ts',
  'test/integration/openapi-fuzz.test.ts',
  'test/faults/web-ui.test.ts',
  'test/integration/packages.test.ts',
  'test/integration/blob-move.test.ts',
  'e2e/web-runs.test.ts',
  'e2e/killed-server.test.ts',
  'test/contracts/payload-store.test.ts',
  'e2e/web-settings.test.ts',
  'test/faults/incidents.test.ts',
  'test/contracts/redis-dispatcher.test.ts',
  'test/integration/bundle.test.ts',
  'e2e/dashboard-updates.test.ts',
  'test/integration/start.test.ts',
  'e2e/web-graph.test.ts',
  'test/integration/managed-postgres.test.ts',
  'test/integration/migration-kills.test.ts',
  'test/integration/backup-kills.test.ts',
  'e2e/checkpoint-modes.test.ts',
  'e2e/web-stack.test.ts',
  'test/integration/access-matrix.test.ts',
  'test/integration/bad-input-size.test.ts',
  'e2e/web-edits.test.ts',
  'test/contracts/blob-move.test.ts',
  'test/faults/restore.test.ts',
  'test/integration/import-archive.test.ts',
  'e2e/web-rules.test.ts',
  'e2e/web-chunks.test.ts',
  'test/integration/consumers.test.ts',
  'test/integration/late-changes.test.ts',
  'test/integration/cluster/late-changes.test.ts',
  'test/integration/import-versions.test.ts',
  'e2e/web-trouble.test.ts',
  'test/integration/fsck.test.ts',
  'test/integration/image.test.ts',
  'e2e/deleted-stacks.test.ts',
  'test/integration/cluster/redis-groups.test.ts',
  'e2e/programs.test.ts',
  'e2e/state-commands.test.ts',
  'e2e/many-users.test.ts',
  // Not beside the fault tests: both load the machine, and this file measures how other callers fare meanwhile.
  'test/abuse/abuse.test.ts',
].map((file) => join(import.meta.dirname, '..', file));

/**
 * Runs the slowest files first, so that no worker is left alone with one of them at the end. Jest knows the durations of files only from
 * earlier runs, which CI does not have.
 */
export default class SlowFirst extends Sequencer {
  override sort(tests: Test[]): Test[] {
    const rank = ({ path }: Test): number => (slowest.includes(path) ? slowest.indexOf(path) : slowest.length);
    return (super.sort(tests) as Test[]).sort((a, b) => rank(a) - rank(b));
  }
}
