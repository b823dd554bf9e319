import { runEncrypted } from '../../support/encrypted-app.ts';

await runEncrypted(() => import('../journal.test.ts'));
