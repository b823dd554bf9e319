import { runSealed } from '../../support/sealed-app.ts';

await runSealed(() => import('../scrub.test.ts'));
