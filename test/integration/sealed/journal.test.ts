import { runSealed } from '../../support/sealed-app.ts';

await runSealed(() => import('../journal.test.ts'));
