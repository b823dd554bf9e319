import type { StateResource } from './deployment.ts';

type Failure = (resource: StateResource) => string;

/** Error messages of providers whose cloud refuses a call, by package. */
const failures: Readonly<Record<string, readonly Failure[]>> = {
  aws: [
    ({ id, type, urn }) =>
      `sdk-v2/provider2.go:572: sdk.helper_schema: updating ${noun(type)} (${id}): operation error ${service(type)}: Update${noun(type)}, https response error StatusCode: 403, RequestID: 7f4c2f0e-58b1-4c0e-9d52-3f1f6c7a9b21, api error AccessDeniedException: User: arn:aws:sts::481516234215:assumed-role/deploy/ci is not authorized to perform: ${service(type).toLowerCase()}:Update${noun(type)} on resource: ${name(urn)}`,
    ({ id, type }) =>
      `1 error occurred:\n\t* updating ${service(type)} ${noun(type)} (${id}): waiting for completion: timeout while waiting for state to become 'ACTIVE' (last state: 'IN_PROGRESS', timeout: 10m0s)`,
    ({ id, type }) =>
      `1 error occurred:\n\t* updating ${service(type)} ${noun(type)} (${id}): operation error ${service(type)}: Update${noun(type)}, exceeded maximum number of attempts, 25, https response error StatusCode: 400, RequestID: 0d9e54c5-1f6e-4a58-8c6c-2a5f40c7d0ab, api error ThrottlingException: Rate exceeded`,
  ],
  gcp: [
    ({ urn }) =>
      `1 error occurred:\n\t* Error updating ${name(urn)}: googleapi: Error 403: Permission 'bigquery.tables.update' denied on resource (or it may not exist)., forbidden`,
    ({ urn }) =>
      `1 error occurred:\n\t* Error updating ${name(urn)}: googleapi: Error 429: Quota exceeded for quota metric 'Administrator operations' and limit 'Administrator operations per minute' of service 'pubsub.googleapis.com', rateLimitExceeded`,
  ],
  kubernetes: [
    ({ urn }) =>
      `5 errors occurred:\n\t* the Kubernetes API server reported that "apps/${name(urn)}" failed to fully initialize or become live: '${name(urn)}' timed out waiting to be Ready\n\t* [MinimumReplicasUnavailable] Deployment does not have minimum availability.\n\t* Minimum number of live Pods was not attained\n\t* [Pod ${name(urn)}-6c9f8d7b5-x2kqv]: containers with unready status: [app]\n\t* [Pod ${name(urn)}-6c9f8d7b5-x2kqv]: CrashLoopBackOff: back-off 2m40s restarting failed container`,
    ({ urn }) =>
      `Server-Side Apply field conflict detected: Apply failed with 1 conflict: conflict with "kubectl-client-side-apply" using v1: .data.config in ${name(urn)}. See https://www.pulumi.com/registry/packages/kubernetes/how-to-guides/managing-resources-with-server-side-apply/#handle-field-conflicts-on-existing-resources for troubleshooting help`,
  ],
  cloudflare: [
    ({ urn }) =>
      `PUT "https://api.cloudflare.com/client/v4/zones/023e105f4ecef8ad9ca31a8372d0c353/dns_records/${name(urn)}": 403 Forbidden {"success":false,"errors":[{"code":10000,"message":"Authentication error"}]}`,
  ],
};
const others: readonly Failure[] = [
  ({ urn }) => `rpc error: code = Unavailable desc = ${name(urn)}: connection reset by peer`,
];

/** `choice` is from 0 to 1. */
export function failureOf(resource: StateResource, choice: number): string {
  const known = failures[resource.type.split(':')[0] ?? ''] ?? others;
  return (known[Math.min(known.length - 1, Math.floor(choice * known.length))] as Failure)(resource);
}

/** The service of a type: `ECS` of `aws:ecs/service:Service`. */
function service(type: string): string {
  return (type.split(':')[1]?.split('/')[0] ?? '').toUpperCase();
}

function noun(type: string): string {
  return type.split(':').at(-1) ?? type;
}

function name(urn: string): string {
  return urn.split('::').at(-1) ?? urn;
}
