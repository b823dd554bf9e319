/** Kubernetes sets these variables in each container of a namespace for a port of a service. */
export function serviceLinks(
  service: string,
  port: { readonly name: string; readonly port: number },
): Record<string, string> {
  const name = service.toUpperCase().replaceAll('-', '_');
  const host = '10.96.14.7';
  const address = `tcp://${host}:${port.port}`;
  const prefix = `${name}_PORT_${port.port}_TCP`;
  return {
    [`${name}_SERVICE_HOST`]: host,
    [`${name}_SERVICE_PORT`]: String(port.port),
    [`${name}_SERVICE_PORT_${port.name.toUpperCase().replaceAll('-', '_')}`]: String(port.port),
    [`${name}_PORT`]: address,
    [prefix]: address,
    [`${prefix}_PROTO`]: 'tcp',
    [`${prefix}_PORT`]: String(port.port),
    [`${prefix}_ADDR`]: host,
  };
}

/** With a variable that only looks like one of the chart's services. */
export const chartServiceLinks: Readonly<Record<string, string>> = {
  ...serviceLinks('holdfast', { name: 'http', port: 9090 }),
  ...serviceLinks('holdfast-api', { name: 'http', port: 9090 }),
  ...serviceLinks('holdfast-metrics', { name: 'management', port: 9092 }),
  ...serviceLinks('holdfast-web', { name: 'http', port: 80 }),
};
