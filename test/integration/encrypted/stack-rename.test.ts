import { runEncrypted } from '../../support/encrypted-app.ts';

await runEncrypted(() => import('../stack-rename.test.ts'));
