/** A fault of the plugin or of the command line. Its message is all that the author needs. */
export class BuildError extends Error {}
