import { type OwnHoldfastServer, startOwnHoldfast } from '../testkit/holdfast-server.ts';
import { fileServer, suite } from '../testkit/suite.ts';
import { testRulesWithoutJournal, testSuperseding } from './update-queue-suite.ts';

await suite('the queue and rules, with the old CLI', {
  ownServer: true,
  tools: ['pulumi-3.142', 'test-provider'],
}, () => {
  const server = fileServer<OwnHoldfastServer>(() =>
    startOwnHoldfast({ HOLDFAST_LOCK_WAIT_SECONDS: '3600', HOLDFAST_LONG_POLL_SECONDS: '2' }, { prepared: true }),
  );
  testSuperseding(server, '3.142');
  testRulesWithoutJournal(server, '3.142');
});
