import { ResourceList } from '../resources.ts';
import { type DemoProgram, isProduction } from './program.ts';

/** Tables, streams and jobs. */
export const analytics: DemoProgram = {
  project: 'analytics',
  description: 'Event streams, warehouse and nightly jobs',
  runtime: 'python',
  team: 'data',
  build: (stack, { number, choices }) => {
    const list = new ResourceList();
    const labels = { team: 'data', environment: stack.stack };
    const set = list.add(
      'gcp:bigquery/dataset:Dataset',
      'events',
      { datasetId: 'events', location: 'EU', labels },
      { protect: isProduction(stack) },
    );
    for (const table of ['orders', 'sessions', 'payments', 'returns', 'stock', 'prices', 'reviews', 'support'].slice(
      0,
      3 + stack.scale + (number % 2),
    )) {
      list.add(
        'gcp:bigquery/table:Table',
        table,
        { datasetId: 'events', tableId: table, timePartitioning: { type: 'DAY' }, labels },
        { dependsOn: [set], protect: isProduction(stack), computed: { numRows: choices.between(10_000, 9_000_000) } },
      );
      const topic = list.add('gcp:pubsub/topic:Topic', table, { messageRetentionDuration: '86400s', labels });
      list.add(
        'gcp:pubsub/subscription:Subscription',
        `${table}-to-warehouse`,
        { ackDeadlineSeconds: 30 + number, bigqueryConfig: { table: `events.${table}` } },
        { dependsOn: [topic] },
      );
    }
    const account = list.add('gcp:serviceaccount/account:Account', 'jobs', {
      accountId: 'jobs',
      displayName: 'Nightly jobs',
    });
    for (const job of ['compact', 'export', 'forecast'])
      list.add(
        'gcp:cloudrunv2/job:Job',
        job,
        {
          location: 'europe-west1',
          template: { image: `europe-docker.pkg.dev/acme/jobs/${job}:${20 + number}` },
          labels,
        },
        { dependsOn: [account, set] },
      );
    return list.resources;
  },
  outputs: () => ({ dataset: 'events', console: 'https://console.cloud.google.com/bigquery?project=acme' }),
};
