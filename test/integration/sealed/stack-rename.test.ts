import { runEncrypted } from '../../support/sealed-app.ts';

await runEncrypted(() => import('../stack-rename.test.ts'));
