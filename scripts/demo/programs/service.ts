import { ResourceList } from '../resources.ts';
import type { DemoProgram } from './program.ts';

/** One small service of many. */
export const service: DemoProgram = {
  project: 'service',
  description: 'A service on the shared cluster',
  runtime: 'nodejs',
  team: 'product',
  build: (stack, { number, choices }) => {
    const list = new ResourceList();
    const name = stack.project;
    list.reads(`${stack.organization}/cluster/${stack.stack}`);
    const space = list.add('kubernetes:core/v1:Namespace', name, { metadata: { name } });
    const settings = list.add(
      'kubernetes:core/v1:ConfigMap',
      'settings',
      {
        metadata: { namespace: name },
        data: { LOG_LEVEL: number % 5 === 0 ? 'debug' : 'info', FEATURES: `f${number}` },
      },
      { dependsOn: [space] },
    );
    const deployment = list.add(
      'kubernetes:apps/v1:Deployment',
      name,
      {
        metadata: { namespace: name },
        spec: {
          replicas: stack.scale + choices.between(0, 2),
          template: {
            spec: { containers: [{ name, image: `registry.acme.example/${name}:${number}.${choices.between(0, 9)}` }] },
          },
        },
      },
      { dependsOn: [settings] },
    );
    list.add(
      'kubernetes:core/v1:Service',
      name,
      { spec: { type: 'ClusterIP', ports: [{ port: 80, targetPort: 8080 }] } },
      { dependsOn: [deployment] },
    );
    list.add(
      'kubernetes:autoscaling/v2:HorizontalPodAutoscaler',
      name,
      { spec: { minReplicas: stack.scale, maxReplicas: 10 } },
      { dependsOn: [deployment] },
    );
    if (number % 2 === 0)
      list.add(
        'kubernetes:batch/v1:CronJob',
        'cleanup',
        { spec: { schedule: '0 3 * * *' } },
        { dependsOn: [settings] },
      );
    return list.resources;
  },
  outputs: (stack) => ({ address: `http://${stack.project}.${stack.project}.svc.cluster.local` }),
};
