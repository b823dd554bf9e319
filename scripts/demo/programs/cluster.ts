import { ResourceList } from '../resources.ts';
import { account, type DemoProgram, isProduction, tagsOf } from './program.ts';

/** A Kubernetes cluster with the parts that every team needs. */
export const cluster: DemoProgram = {
  project: 'cluster',
  description: 'Kubernetes with ingress, monitoring and certificates',
  runtime: 'go',
  team: 'platform',
  build: (stack, { number, choices }) => {
    const list = new ResourceList();
    const tags = tagsOf(stack, 'platform');
    const role = list.add('aws:iam/role:Role', 'nodes', { assumeRolePolicy: '{"Version":"2012-10-17"}', tags });
    const eks = list.add(
      'aws:eks/cluster:Cluster',
      'main',
      { version: `1.${31 + Math.floor(number / 3)}`, roleArn: `arn:aws:iam::${account}:role/eks`, tags },
      {
        protect: isProduction(stack),
        dependsOn: [role],
        computed: { endpoint: `https://${choices.hex(32)}.gr7.${stack.region}.eks.amazonaws.com`, status: 'ACTIVE' },
      },
    );
    for (const pool of ['general', 'memory', 'gpu'].slice(0, stack.scale)) {
      list.add(
        'aws:eks/nodeGroup:NodeGroup',
        pool,
        {
          instanceTypes: [pool === 'gpu' ? 'g6.xlarge' : 'm7g.xlarge'],
          scalingConfig: { minSize: 1, desiredSize: stack.scale + (number % 3), maxSize: 12 },
          tags,
        },
        { dependsOn: [eks] },
      );
    }
    for (const name of ['ingress', 'monitoring', 'certificates', 'secrets', 'autoscaler', 'backup']) {
      const group = list.component('acme:kubernetes:Addon', name);
      const space = list.add(
        'kubernetes:core/v1:Namespace',
        name,
        { metadata: { name } },
        { parent: group, dependsOn: [eks] },
      );
      list.add(
        'kubernetes:helm.sh/v3:Release',
        name,
        {
          chart: name,
          version: `${2 + (name.length % 4)}.${number}.0`,
          namespace: name,
          values: { replicas: stack.scale },
        },
        { parent: group, dependsOn: [space] },
      );
      list.add(
        'kubernetes:core/v1:ConfigMap',
        `${name}-settings`,
        { metadata: { namespace: name }, data: { level: number % 2 ? 'info' : 'warn' } },
        { parent: group, dependsOn: [space] },
      );
      list.add(
        'kubernetes:policy/v1:PodDisruptionBudget',
        name,
        { spec: { minAvailable: 1 } },
        { parent: group, dependsOn: [space] },
      );
    }
    for (let team = 0; team < stack.scale * 5 + (number % 4); team++)
      list.add(
        'kubernetes:rbac.authorization.k8s.io/v1:RoleBinding',
        `team-${team}`,
        { roleRef: { kind: 'ClusterRole', name: 'edit' }, subjects: [{ kind: 'Group', name: `team-${team}` }] },
        { dependsOn: [eks] },
      );
    return list.resources;
  },
  outputs: (stack, { number }) => ({
    clusterName: `${stack.organization}-${stack.stack}`,
    version: `1.${31 + Math.floor(number / 3)}`,
    kubeconfig: `secret:apiVersion: v1, cluster ${stack.stack}`,
  }),
};
