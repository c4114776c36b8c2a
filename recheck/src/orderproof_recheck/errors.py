"""The error of this package."""


class CertificateError(Exception):
    """A certificate that cannot be read, or with a step that does not follow."""
