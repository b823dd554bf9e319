import { getRouteApi } from '@tanstack/react-router';

const updateRoute = getRouteApi('/$organization/$project/$stack/updates/$version');
const previewRoute = getRouteApi('/$organization/$project/$stack/previews/$updateId');

/** An update, by the version that it made. */
export function UpdatePage() {
  return <h1>Update {updateRoute.useParams().version}</h1>;
}

/** A preview, by its id. */
export function PreviewPage() {
  return <h1>Preview {previewRoute.useParams().updateId}</h1>;
}
