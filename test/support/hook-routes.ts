export function hookRoutes(path: string): string[] {
  const hooks = `${path}/hooks`;
  return [
    `GET ${hooks}`,
    `POST ${hooks}`,
    ...['GET', 'PATCH', 'DELETE'].map((method) => `${method} ${hooks}/:hook`),
    `POST ${hooks}/:hook/ping`,
    `GET ${hooks}/:hook/deliveries`,
    `POST ${hooks}/:hook/deliveries/:deliveryId/redeliver`,
  ];
}
