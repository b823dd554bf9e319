/**
 * Names of the operations in the OpenAPI documents, which `pulumi api` accepts in place of paths. Clients rely on them: a name
 * never changes its meaning. Where Pulumi's own API has the operation, it has the same name there.
 */
const operationIds: Readonly<Record<string, string>> = {
  'GET /healthz': 'GetHealth',
  'GET /readyz': 'GetReadiness',
  'GET /metrics': 'GetMetrics',
  'GET /admin/queues': 'ShowQueues',
  'GET /sign-in': 'ShowSignIn',
  'POST /sign-in': 'SignIn',
  'GET /sign-in/provider': 'SignInWithProvider',
  'GET /sign-in/provider/callback': 'ReturnFromProvider',
  'POST /sign-in/passkey/options': 'BeginPasskeySignIn',
  'POST /sign-in/passkey': 'SignInWithPasskey',
  'POST /account/passkeys/options': 'BeginPasskey',
  'POST /account/passkeys': 'AddPasskey',
  'POST /account/passkeys/remove': 'RemovePasskey',
  'POST /sign-out': 'SignOut',
  'GET /account': 'ShowAccount',
  'POST /account/end-session': 'EndSession',
  'POST /account/sign-out-everywhere': 'SignOutEverywhere',
  'POST /account/password': 'ChangePassword',
  'GET /cli-login': 'ShowCliLogin',
  'POST /cli-login': 'AllowCliLogin',
  'GET /welcome/cli': 'ShowCliWelcome',
  'GET /assets/sign-in.css': 'GetPageStyle',
  'GET /assets/sign-in.js': 'GetPageScript',
  'GET /api/capabilities': 'GetCapabilities',
  'GET /api/cli/version': 'GetCliVersion',
  'GET /api/openapi.json': 'GetOpenApi',
  'GET /api/openapi/pulumi-spec.json': 'GetPulumiSpec',
  'GET /api/registry/packages': 'ListPackages',
  'GET /api/registry/templates': 'ListTemplates',
  'GET /api/user': 'GetCurrentUser',
  'GET /api/user/organizations/default': 'GetDefaultOrganization',
  'GET /api/user/stacks': 'ListUserStacks',
  'HEAD /api/stacks/{organization}/{project}': 'ProjectExists',
  'POST /api/stacks/{organization}/{project}': 'CreateStack',
  'GET /api/orgs/{organization}/policypacks': 'ListPolicyPacks',
  'POST /api/orgs/{organization}/policypacks': 'CreatePolicyPack',
  'DELETE /api/orgs/{organization}/policypacks/{pack}': 'DeletePolicyPack',
  'DELETE /api/orgs/{organization}/policypacks/{pack}/versions/{versionTag}': 'DeletePolicyPackVersion',
  'POST /api/orgs/{organization}/policypacks/{pack}/versions/{versionTag}/complete': 'CompletePolicyPack',
  'GET /api/orgs/{organization}/policypacks/{pack}/versions/{versionTag}/schema': 'GetPolicyPackConfigSchema',
  'GET /api/orgs/{organization}/policygroups': 'ListPolicyGroups',
  'POST /api/orgs/{organization}/policygroups': 'NewPolicyGroup',
  'GET /api/orgs/{organization}/policygroups/{group}': 'GetPolicyGroup',
  'PATCH /api/orgs/{organization}/policygroups/{group}': 'UpdatePolicyGroup',
  'DELETE /api/orgs/{organization}/policygroups/{group}': 'DeletePolicyGroup',
  'GET /api/orgs/{organization}/auditlogs': 'ListAuditLogEvents',
  'GET /api/orgs/{organization}/auditlogs/export': 'ExportAuditLogEvents',
  'GET /api/orgs/{organization}/members': 'ListOrganizationMembers',
  'GET /api/orgs/{organization}/access-policy': 'GetAccessPolicy',
  'PATCH /api/orgs/{organization}/access-policy': 'UpdateAccessPolicy',
  'PATCH /api/orgs/{organization}/members/{login}': 'UpdateOrganizationMember',
  'DELETE /api/orgs/{organization}/members/{login}': 'DeleteOrganizationMember',
  'GET /api/orgs/{organization}/teams': 'ListTeams',
  'POST /api/orgs/{organization}/teams/pulumi': 'CreatePulumiTeam',
  'GET /api/orgs/{organization}/teams/{team}': 'GetTeam',
  'PATCH /api/orgs/{organization}/teams/{team}': 'UpdateTeam',
  'DELETE /api/orgs/{organization}/teams/{team}': 'DeleteTeam',
  ...ofTokens('/api/user/tokens', 'Personal'),
  ...ofTokens('/api/orgs/{organization}/tokens', 'Org'),
  ...ofTokens('/api/orgs/{organization}/teams/{team}/tokens', 'Team'),
  ...ofScim(),
  'POST /api/oauth/token': 'TokenExchange',
  'GET /api/orgs/{organization}/oidc/issuers': 'ListOidcIssuers',
  'POST /api/orgs/{organization}/oidc/issuers': 'RegisterOidcIssuer',
  'GET /api/orgs/{organization}/oidc/issuers/{issuerId}': 'GetOidcIssuer',
  'PATCH /api/orgs/{organization}/oidc/issuers/{issuerId}': 'UpdateOidcIssuer',
  'DELETE /api/orgs/{organization}/oidc/issuers/{issuerId}': 'DeleteOidcIssuer',
  'GET /api/orgs/{organization}/auth/policies/oidcissuers/{issuerId}': 'GetAuthPolicy',
  'PATCH /api/orgs/{organization}/auth/policies/{policyId}': 'UpdateAuthPolicy',
  'PUT /policy-packs/{versionId}': 'UploadPolicyPackArchive',
  'GET /policy-packs/{versionId}': 'DownloadPolicyPackArchive',
  ...ofStack({
    'GET ': 'GetStack',
    'DELETE ': 'DeleteStack',
    'POST /rename': 'RenameStack',
    'PATCH /tags': 'UpdateStackTags',
    'GET /policypacks': 'ListStackPolicyPacks',
    'GET /teams': 'ListStackTeams',
    'GET /collaborators': 'ListStackCollaborators',
    'GET /export': 'ExportStack',
    'GET /export/{stackVersion}': 'ExportStackVersion',
    'POST /import': 'ImportStack',
    'POST /encrypt': 'EncryptValue',
    'POST /decrypt': 'DecryptValue',
    'POST /batch-encrypt': 'BatchEncryptValues',
    'POST /batch-decrypt': 'BatchDecryptValues',
    'POST /decrypt/log-decryption': 'LogDecryption',
    'POST /decrypt/log-batch-decryption': 'LogBatchDecryption',
    'GET /updates': 'ListStackUpdates',
    'GET /updates/latest': 'GetLatestStackUpdate',
    'GET /updates/latest/previews': 'ListLatestStackPreviews',
    'POST /update': 'CreateUpdate',
    'POST /preview': 'CreatePreview',
    'POST /refresh': 'CreateRefresh',
    'POST /destroy': 'CreateDestroy',
    'POST /begin-update': 'BeginUpdate',
    'POST /{kind}/{updateId}': 'StartUpdate',
    'GET /{kind}/{updateId}': 'GetUpdate',
    'POST /{kind}/{updateId}/cancel': 'CancelUpdate',
    'POST /{kind}/{updateId}/drain': 'DrainUpdate',
    'POST /{kind}/{updateId}/complete': 'CompleteUpdate',
    'POST /{kind}/{updateId}/renew_lease': 'RenewUpdateLease',
    'PATCH /{kind}/{updateId}/checkpoint': 'PatchUpdateCheckpoint',
    'PATCH /{kind}/{updateId}/checkpointverbatim': 'PatchUpdateVerbatimCheckpoint',
    'PATCH /{kind}/{updateId}/checkpointdelta': 'PatchUpdateCheckpointDelta',
    'PATCH /{kind}/{updateId}/journalentries': 'CreateJournalEntries',
    'POST /{kind}/{updateId}/events/batch': 'RecordEngineEvents',
    'GET /{kind}/{updateId}/events': 'ListEngineEvents',
  }),
};

/** Returns the name of an operation, by its method and its path with parameters in braces. Undefined if it has none. */
export function operationIdOf(method: string, path: string): string | undefined {
  return operationIds[`${method.toUpperCase()} ${path}`];
}

function ofTokens(path: string, owner: string): Record<string, string> {
  return {
    [`GET ${path}`]: `List${owner}Tokens`,
    [`POST ${path}`]: `Create${owner}Token`,
    [`DELETE ${path}/{tokenId}`]: `Delete${owner}Token`,
    [`POST ${path}/{tokenId}/rotate`]: `Rotate${owner}Token`,
  };
}

function ofScim(): Record<string, string> {
  const path = '/scim/v2/{organization}';
  const of = (plural: string, name: string): Record<string, string> => ({
    [`GET ${path}/${plural}`]: `ListScim${plural}`,
    [`POST ${path}/${plural}`]: `CreateScim${name}`,
    [`GET ${path}/${plural}/{id}`]: `GetScim${name}`,
    [`PUT ${path}/${plural}/{id}`]: `ReplaceScim${name}`,
    [`PATCH ${path}/${plural}/{id}`]: `PatchScim${name}`,
    [`DELETE ${path}/${plural}/{id}`]: `DeleteScim${name}`,
  });
  return {
    [`GET ${path}/ServiceProviderConfig`]: 'GetScimConfig',
    [`GET ${path}/ResourceTypes`]: 'ListScimResourceTypes',
    [`GET ${path}/Schemas`]: 'ListScimSchemas',
    ...of('Users', 'User'),
    ...of('Groups', 'Group'),
  };
}

function ofStack(names: Readonly<Record<string, string>>): Record<string, string> {
  const path = '/api/stacks/{organization}/{project}/{stack}';
  return Object.fromEntries(Object.entries(names).map(([call, name]) => [call.replace(' ', ` ${path}`), name]));
}
