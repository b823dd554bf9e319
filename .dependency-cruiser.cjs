const { Visitor } = require('@swc/core/Visitor.js');

// The visitor through which dependency-cruiser reads TypeScript does not know `using` declarations.
const { visitStatement } = Visitor.prototype;
Visitor.prototype.visitStatement = function (statement) {
  if (statement.type !== 'UsingDeclaration') return visitStatement.call(this, statement);
  statement.decls = this.visitVariableDeclarators(statement.decls);
  return statement;
};

/**
 * The borders inside the code base. Whoever needs an exception changes the layout, not this file.
 *
 * @type {import('dependency-cruiser').IConfiguration}
 */
const entry = '^src/main\\.ts$';
const nouns = '^src/shared/(checkpoints|events|identity|journal|secrets|stacks|updates)/';
const test = '\\.test\\.ts$';

/** A package may be imported from these places only. */
const onlyIn = (name, packages, places) => ({
  name,
  severity: 'error',
  from: { path: '^src/', pathNot: [...places, test] },
  to: { path: `^node_modules/(${packages})(/|$)` },
});

module.exports = {
  forbidden: [
    {
      name: 'api-not-to-workers',
      comment: 'The roles are deployed apart; only the composition root joins them.',
      severity: 'error',
      from: { path: '^src/api/' },
      to: { path: '^src/workers/' },
    },
    {
      name: 'workers-not-to-api',
      severity: 'error',
      from: { path: '^src/workers/' },
      to: { path: '^src/api/' },
    },
    {
      name: 'roles-joined-at-the-root-only',
      comment: 'src/server.ts joins the roles in one process; the command line only starts them.',
      severity: 'error',
      from: { path: '^src/(cli/|[^/]+\\.ts$)', pathNot: '^src/server\\.ts$' },
      to: { path: '^src/(api|workers)/', pathNot: '^src/(api|workers)/main\\.ts$' },
    },
    {
      name: 'shared-knows-no-role',
      severity: 'error',
      from: { path: '^src/shared/' },
      to: { path: '^src/(?!shared/)' },
    },
    {
      name: 'platform-knows-no-noun',
      severity: 'error',
      from: { path: '^src/shared/platform/' },
      to: { path: [nouns, '^src/shared/(protocol/|context\\.ts$)'] },
    },
    {
      name: 'protocol-stands-alone',
      severity: 'error',
      from: { path: '^src/shared/protocol/' },
      to: { path: '^src/', pathNot: '^src/shared/protocol/' },
    },
    {
      name: 'routes-not-to-repositories',
      comment: 'Routes and plugins call services; statements are reached through those.',
      severity: 'error',
      // answers.ts turns rows into the shapes of the wire: it imports their types.
      from: { path: ['^src/api/(pulumi|plugins|trpc)/', '^src/api/[^/]+\\.ts$'], pathNot: '^src/api/pulumi/answers\\.ts$' },
      to: { path: '-repository\\.ts$' },
    },
    {
      name: 'repositories-hold-statements-only',
      severity: 'error',
      from: { path: '-repository\\.ts$' },
      to: { path: '(^src/shared/context|-(writer|reader|importer|folder|closer|cipher|service))\\.ts$' },
    },
    onlyIn('fastify-in-api', '@?fastify', ['^src/api/']),
    onlyIn('commander-in-cli', 'commander', ['^src/cli/']),
    onlyIn('redis-in-queue', 'bullmq|ioredis', ['^src/shared/platform/queue/', '^src/workers/queue-workers\\.ts$']),
    onlyIn('s3-in-blobs', '@aws-sdk|@smithy', ['^src/shared/platform/blobs/']),
    onlyIn('sql-in-db-and-repositories', 'slonik|@slonik|pg|node-pg-migrate', [
      '^src/shared/platform/db/',
      '-repository\\.ts$',
    ]),
    onlyIn('metrics-in-telemetry', 'prom-client', ['^src/shared/platform/telemetry/']),
    onlyIn('pino-in-logger', 'pino', ['^src/shared/platform/logger/']),
    {
      name: 'e2e-is-black-box',
      comment: 'End-to-end tests know the server by its command line and its port.',
      severity: 'error',
      from: { path: '^e2e/' },
      to: { path: '^(src|test)/' },
    },
    {
      name: 'product-needs-no-test',
      severity: 'error',
      from: { path: '^(src|bin)/', pathNot: test },
      to: { path: ['^(test|e2e|bench|scripts)/', test] },
    },
    {
      name: 'product-needs-no-dev-dependency',
      severity: 'error',
      from: { path: '^(src|bin)/', pathNot: test },
      to: { dependencyTypes: ['npm-dev', 'npm-no-pkg', 'npm-unknown'] },
    },
    {
      name: 'resolvable',
      severity: 'error',
      from: {},
      to: { couldNotResolve: true },
    },
    { name: 'no-cycles', severity: 'error', from: {}, to: { circular: true } },
    {
      name: 'no-orphans',
      severity: 'error',
      from: { orphan: true, path: '^src/', pathNot: [entry, test] },
      to: {},
    },
    {
      name: 'no-barrels',
      comment: 'Import the file that defines a thing.',
      severity: 'error',
      from: { path: '^(src|test|e2e)/' },
      to: { path: '/index\\.ts$', pathNot: '^node_modules/' },
    },
  ],
  options: {
    // TypeScript 7 has no API that dependency-cruiser could use; swc reads the files, and `import type` counts as
    // an import.
    parser: 'swc',
    tsPreCompilationDeps: true,
    doNotFollow: { path: '^node_modules/' },
    exclude: { path: '^(dist|data)/' },
    enhancedResolveOptions: { exportsFields: ['exports'], conditionNames: ['import', 'node', 'types', 'default'] },
    detectJSDocImports: false,
  },
};
