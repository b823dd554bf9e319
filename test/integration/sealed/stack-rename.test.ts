import { runSealed } from '../../support/sealed-app.ts';

await runSealed(() => import('../stack-rename.test.ts'));
